//! A real directory server with a few people. `None` where `slapd` is not installed; `.ci/run` installs it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use tokio::net::TcpStream;

use super::server::free_port;
use super::wait;

/// Anna is in the group, Bob is not; the reader only reads.
const PEOPLE: &str = "\
dn: dc=example,dc=test
objectClass: dcObject
objectClass: organization
o: Example

dn: ou=people,dc=example,dc=test
objectClass: organizationalUnit

dn: cn=reader,dc=example,dc=test
objectClass: organizationalRole
objectClass: simpleSecurityObject
userPassword: reader's secret

dn: uid=anna,ou=people,dc=example,dc=test
objectClass: inetOrgPerson
cn: Anna
sn: Example
mail: anna@example.test
userPassword: anna's secret

dn: uid=bob,ou=people,dc=example,dc=test
objectClass: inetOrgPerson
cn: Bob
sn: Example
userPassword: bob's secret

dn: cn=makers,dc=example,dc=test
objectClass: groupOfNames
member: uid=anna,ou=people,dc=example,dc=test
";

const SLAPD: &str = "/usr/sbin/slapd";

/// A running directory server; dropping it ends it.
pub(crate) struct Slapd {
    pub(crate) port: u16,
    pub(crate) tls_port: u16,
    folder: TempDir,
    process: Child,
}

impl Drop for Slapd {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Slapd {
    /// Starts a server that only `cn=reader` may search.
    pub(crate) async fn start() -> Option<Self> {
        Self::with("none").await
    }

    /// Starts a server that anybody may search.
    pub(crate) async fn open_to_all() -> Option<Self> {
        Self::with("read").await
    }

    async fn with(strangers: &str) -> Option<Self> {
        if !Path::new(SLAPD).exists() {
            println!("no slapd: skipped");
            return None;
        }
        let folder = tempfile::Builder::new().prefix("bowsprit-slapd-").tempdir().unwrap();
        // Some systems let the installed program only at its own files.
        std::fs::copy(SLAPD, folder.path().join("slapd")).unwrap();
        std::fs::create_dir(folder.path().join("db")).unwrap();
        std::fs::write(folder.path().join("people.ldif"), PEOPLE).unwrap();
        make_certificate(folder.path());
        std::fs::write(folder.path().join("slapd.conf"), config(folder.path(), strangers)).unwrap();
        let (port, tls_port) = (free_port(), free_port());
        let process = launch(folder.path(), port, tls_port);
        let slapd = Self { port, tls_port, folder, process };
        slapd.ready().await;
        slapd.fill();
        Some(slapd)
    }

    /// Ends the server.
    pub(crate) fn stop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Starts it again.
    pub(crate) async fn start_again(&mut self) {
        self.process = launch(self.folder.path(), self.port, self.tls_port);
        self.ready().await;
    }

    /// The certificate to trust.
    pub(crate) fn certificate(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }

    /// The section `[ldap]` of a server that asks this one: the reader's password is a secret, and users have to be makers.
    pub(crate) fn section(&self) -> String {
        format!(
            "[ldap]\nldap_host: 127.0.0.1\nldap_port: {}\nbase_dn: dc=example,dc=test\nbind_dn: cn={{ 'READER'|lower }},dc=example,dc=test\n\
             bind_password: {{secrets.ldap.password}}\ngroup_dn: cn=makers,dc=example,dc=test\n",
            self.port
        )
    }

    async fn ready(&self) {
        wait::until("slapd listens", || async { TcpStream::connect(("127.0.0.1", self.port)).await.is_ok() }, |listens| *listens).await;
    }

    fn fill(&self) {
        let address = format!("ldap://127.0.0.1:{}", self.port);
        let login = ["-x", "-H", &address, "-D", "cn=root,dc=example,dc=test", "-w", "root", "-f"];
        let added = Command::new("ldapadd").args(login).arg(self.folder.path().join("people.ldif")).output().unwrap();
        assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    }
}

fn launch(folder: &Path, port: u16, tls_port: u16) -> Child {
    let addresses = format!("ldap://127.0.0.1:{port}/ ldaps://127.0.0.1:{tls_port}/");
    let mut command = Command::new(folder.join("slapd"));
    command.args(["-d", "0", "-h", &addresses, "-f"]).arg(folder.join("slapd.conf"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn config(folder: &Path, strangers: &str) -> String {
    let folder = folder.display();
    format!(
        "include /etc/ldap/schema/core.schema\ninclude /etc/ldap/schema/cosine.schema\ninclude /etc/ldap/schema/inetorgperson.schema\n\
         modulepath /usr/lib/ldap\nmoduleload back_mdb\nmoduleload memberof\n\
         pidfile {folder}/pid\nargsfile {folder}/args\nTLSCertificateFile {folder}/cert.pem\nTLSCertificateKeyFile {folder}/key.pem\n\
         access to attrs=userPassword by anonymous auth by * none\n\
         access to * by dn.exact=\"cn=reader,dc=example,dc=test\" read by anonymous {strangers} by * none\n\
         database mdb\nmaxsize 10485760\nsuffix dc=example,dc=test\ndirectory {folder}/db\n\
         rootdn cn=root,dc=example,dc=test\nrootpw root\noverlay memberof\n"
    )
}

/// A certificate of this machine, only for itself.
fn make_certificate(folder: &Path) {
    let request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=directory -keyout key.pem -out cert.pem \
                   -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE";
    let made = Command::new("openssl").args(request.split_whitespace()).current_dir(folder).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}
