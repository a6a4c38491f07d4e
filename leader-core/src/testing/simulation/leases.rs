//! What a server does with leases, told by its answers before they go on their way back.

use std::sync::Arc;

use super::seen::{LeaseStep, Seen};
use super::servers::Servers;
use crate::store::embedded::Embedded;
use crate::store::{Beats, Campaign, Campaigned, Release, Renewal, Renewed, Store, StoreError, Told, Verdict};

pub(super) async fn campaign(
    servers: Arc<Servers>,
    server: Embedded,
    requests: Vec<Campaign>,
) -> Vec<Result<Campaigned, StoreError>> {
    let answers = server.campaign(requests.clone()).await;
    for (request, answer) in requests.iter().zip(&answers) {
        if let Ok(Campaigned {
            verdict: Verdict::Acquired { term },
            ..
        }) = answer
        {
            servers.tell(&Seen::Lease {
                group: request.group.as_str(),
                holder: request.holder.as_str(),
                term: *term,
                step: LeaseStep::Granted(request.ttl),
            });
        }
    }
    answers
}

pub(super) async fn renew(servers: Arc<Servers>, server: Embedded, renewals: Vec<Renewal>, beats: Vec<Beats>) -> Told {
    let told = server.renew(renewals.clone(), beats).await;
    for (renewal, answer) in renewals.iter().zip(&told.renewed) {
        if matches!(answer, Ok(Renewed::Yes { .. })) {
            servers.tell(&Seen::Lease {
                group: renewal.group.as_str(),
                holder: renewal.holder.as_str(),
                term: renewal.term,
                step: LeaseStep::Prolonged(renewal.ttl),
            });
        }
    }
    told
}

pub(super) async fn release(servers: Arc<Servers>, server: Embedded, request: Release) -> Result<(), StoreError> {
    server.release(request.clone()).await?;
    servers.tell(&Seen::Lease {
        group: request.group.as_str(),
        holder: request.holder.as_str(),
        term: request.term,
        step: LeaseStep::Returned,
    });
    Ok(())
}
