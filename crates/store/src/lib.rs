//! SQLite behind one writer thread: group commit, migrations, namespaces.
