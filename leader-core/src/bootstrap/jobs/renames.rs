//! The names that jobs had before.

use super::super::fault::Fault;
use super::super::settings::Faults;
use crate::job::record::Record;
use crate::names::JobName;

/// An earlier name is nobody's else: neither that of a job of the program, nor one that two of them had.
pub(super) fn check(records: &[&Record], faults: &mut Faults) {
    for (at, record) in records.iter().enumerate() {
        for (number, old) in record.was.iter().enumerate() {
            if records
                .iter()
                .any(|other| other.name == *old && other.name != record.name)
            {
                faults.0.push(Fault::WasAJob {
                    job: record.name,
                    was: old,
                });
            }
            let doubled = record.was[..number].contains(old);
            let others = records[..at].iter().filter(|other| other.name != record.name);
            let mut others = others.filter(|other| other.was.contains(old)).map(|other| other.name);
            if let Some(first) = others.next().or(doubled.then_some(record.name)) {
                faults.0.push(Fault::DoubledWas {
                    was: old,
                    first,
                    second: record.name,
                });
            }
        }
    }
}

/// The earlier names of a job; that they are legal was checked when the program was compiled.
pub(super) fn of(record: &Record, faults: &mut Faults) -> Vec<JobName> {
    let names = record.was.iter().map(|old| JobName::new(*old));
    names.filter_map(|name| faults.keep(name)).collect()
}
