//! Options of `[ldap]`.

use config::Reader;
use outbound::ldap::Filter;
use template::Rendered;

use super::PLACE_OF_NAME;

config::choices! {
    /// Attribute that says which groups a user is in.
    pub enum MembershipAttribute {
        /// What most directories have.
        MemberOf = "memberOf",
        /// The other one.
        IsMemberOf = "isMemberOf",
    }
}

config::options! {
    /// A directory server (LDAP, Active Directory) whose users may log in, with `source` `ldap`. They appear in the list of users at their first login.
    pub struct LdapOptions: "ldap" {
        /// Name or address of the server.
        ldap_host: String,
        /// Its port. Unset: 389, or 636 with `ldap_secure`.
        ldap_port: Option<u16> { min 1 } = None,
        /// TLS from the start. The system must trust the server's certificate, and it must be issued to `ldap_host`.
        ldap_secure: bool = false,
        /// Below which entry users are searched.
        base_dn: Rendered,
        /// Who searches. Unset: nobody in particular.
        bind_dn: Option<Rendered> = None,
        /// Password of `bind_dn`; required with it. Best kept in the secrets file: `{secrets.ldap.password}`.
        bind_password: Option<Rendered> = None,
        /// Group that users have to be in. Unset: all users may log in.
        group_dn: Option<Rendered> = None,
        /// Users are named by `sAMAccountName` instead of `uid`.
        is_active_directory: bool = false,
        /// How users are found; every `USERNAME` in a value is replaced by the name, escaped. Unset: `(&(objectClass=Person)(uid=USERNAME))`.
        user_filter: Option<Rendered> = None,
        /// Attribute that says which groups a user is in.
        membership_attribute: MembershipAttribute = MembershipAttribute::MemberOf,
        /// Whether upper and lower case matter when the user's groups are compared with `group_dn`.
        check_dn_case: bool = true,
    }
}

/// A section that cannot be used; the reader knows why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Faulty;

impl LdapOptions {
    /// Reads the section. Who may log in must not depend on a default that stands in for a faulty value.
    ///
    /// # Errors
    /// When something in the section is wrong or missing.
    pub fn read(reader: &mut Reader<'_>) -> Result<Option<Self>, Faulty> {
        let Some(entry) = reader.read::<Self>() else { return Ok(None) };
        let section = entry.section.clone();
        let options = entry.sound().map_err(|_| Faulty)?;
        let faults = options.faults();
        let is_sound = faults.is_empty();
        for (option, message) in faults {
            reader.reject(&section, option, message);
        }
        if is_sound { Ok(Some(options)) } else { Err(Faulty) }
    }

    /// The filter of `user_filter`, with `USERNAME` in it.
    pub(super) fn filter(&self) -> Option<Result<Filter, String>> {
        let text = self.user_filter.as_ref()?.expose();
        let parsed = Filter::parse(text).map_err(|expected| format!("expected a search filter; {expected}"));
        Some(parsed.and_then(|filter| {
            let has_place = filter.clone().fill_in(PLACE_OF_NAME, "");
            if has_place { Ok(filter) } else { Err(format!("expected {PLACE_OF_NAME} in a value")) }
        }))
    }

    /// What is wrong, without texts that may be secret.
    fn faults(&self) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        if self.ldap_host.trim().is_empty() {
            faults.push(("ldap_host", "expected the name or address of the server".to_owned()));
        }
        let templates = [
            ("base_dn", Some(&self.base_dn)),
            ("bind_dn", self.bind_dn.as_ref()),
            ("bind_password", self.bind_password.as_ref()),
            ("group_dn", self.group_dn.as_ref()),
        ];
        for (option, value) in templates {
            if value.is_some_and(|value| value.expose().is_empty()) {
                faults.push((option, "expected a text that is not empty once its template is filled in".to_owned()));
            }
        }
        if self.bind_dn.is_some() != self.bind_password.is_some() {
            let missing = if self.bind_dn.is_some() { "bind_password" } else { "bind_dn" };
            faults.push((missing, "expected bind_dn and bind_password together".to_owned()));
        }
        if let Some(Err(fault)) = self.filter() {
            faults.push(("user_filter", fault));
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use config::{Context, OptionSet, Secrets};

    use super::*;
    use crate::ldap::LdapDirectory;

    fn read(text: &str) -> (Result<Option<LdapOptions>, Faulty>, Vec<String>) {
        let loaded = config::load_text("core.conf", text);
        let (secrets, _) = Secrets::parse("core.secrets", br#"{"ldap": {"password": "hunter2", "base": "dc=example"}}"#);
        let context = Context { secrets, ..Context::default() };
        let mut reader = Reader::new(&loaded.document, &context);
        let options = LdapOptions::read(&mut reader);
        (options, reader.problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn secrets_and_expressions_are_filled_in_and_not_shown() {
        let text = "[ldap]\nldap_host: h\nbase_dn: ou=people,{secrets.ldap.base}\nbind_dn: cn={ 'READER' | lower },{secrets.ldap.base}\n\
                    bind_password: {secrets.ldap.password}\n";
        let (Ok(Some(options)), problems) = read(text) else { panic!("{:?}", read(text).1) };
        assert!(problems.is_empty(), "{problems:?}");
        let directory = LdapDirectory::new(&options);
        assert_eq!(directory.base, "ou=people,dc=example");
        let (dn, password) = directory.reader.unwrap();
        assert_eq!((dn.as_str(), password.expose().as_str()), ("cn=reader,dc=example", "hunter2"));
        assert_eq!((directory.server.port, directory.server.tls), (389, false));
        let shown = format!("{options:?} {}", serde_json::Value::Object(options.effective()));
        assert!(shown.contains("{secrets.ldap.password}") && !shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn a_section_with_a_fault_is_not_used() {
        let sound = "[ldap]\nldap_host: h\nbase_dn: dc=x\n";
        assert!(matches!(read(sound).0, Ok(Some(_))));
        assert_eq!(read("[server]\n").0, Ok(None));
        for (option, fault) in [
            ("bind_dn: cn=x", "[ldap] bind_password: expected bind_dn and bind_password together"),
            ("bind_password: hunter2", "[ldap] bind_dn: expected bind_dn and bind_password together"),
            ("bind_dn: cn=x\nbind_password: {secrets.ldap.password[:0]}", "[ldap] bind_password: expected a text that is not empty"),
            ("user_filter: (uid=USERNAME", "[ldap] user_filter: expected a search filter; `)` after 13 bytes"),
            ("user_filter: (uid=*)", "[ldap] user_filter: expected USERNAME in a value"),
            ("group_dn: {% if %}hunter2", "[ldap] group_dn: expected a template"),
            ("check_dn_case: perhaps", "[ldap] check_dn_case: expected"),
            ("membership_attribute: groups", "[ldap] membership_attribute: expected one of `memberOf`, `isMemberOf`"),
        ] {
            let (options, problems) = read(&format!("{sound}{option}\n"));
            assert_eq!(options, Err(Faulty), "{option}");
            assert!(problems.iter().any(|problem| problem.contains(fault)), "{option}: {problems:?}");
            assert!(problems.iter().all(|problem| !problem.contains("hunter2")), "{problems:?}");
        }
        assert_eq!(read("[ldap]\nldap_host: h\n").0, Err(Faulty), "base_dn is required");
    }
}
