//! What a session measures, for Bevy's diagnostics: logs and overlays show it.

use crate::rate::Meter;
use bevy::diagnostic::{Diagnostic, DiagnosticPath, Diagnostics, RegisterDiagnostic};
use bevy::prelude::*;
use bevy::time::Real;

/// Round trip of the client's session, smoothed, ms.
pub const RTT: DiagnosticPath = DiagnosticPath::const_new("whitewater/rtt");
/// Packets that got lost on the way to the peer in the last 10 s, percent.
pub const LOSS: DiagnosticPath = DiagnosticPath::const_new("whitewater/loss");
/// Bytes of datagrams sent a second.
pub const BYTES_SENT: DiagnosticPath = DiagnosticPath::const_new("whitewater/sent");
/// Bytes of datagrams received a second.
pub const BYTES_RECEIVED: DiagnosticPath = DiagnosticPath::const_new("whitewater/received");
/// Segments that were sent again a second.
pub const RESENT: DiagnosticPath = DiagnosticPath::const_new("whitewater/resent");
/// Packets and segments that were rebuilt from repairs a second, without waiting for a round trip.
pub const REPAIRED: DiagnosticPath = DiagnosticPath::const_new("whitewater/repaired");
/// Clients that are connected to the server.
pub const CLIENTS: DiagnosticPath = DiagnosticPath::const_new("whitewater/clients");

/// Measures the session of the client, and the traffic of the server, once a frame; rates once a second.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "a plugin without settings")]
pub struct WhitewaterDiagnosticsPlugin;

impl Plugin for WhitewaterDiagnosticsPlugin {
    fn build(&self, app: &mut App) {
        let of = |path, unit| Diagnostic::new(path).with_suffix(unit);
        app.register_diagnostic(of(BYTES_SENT, " B/s")).register_diagnostic(of(BYTES_RECEIVED, " B/s"));
        #[cfg(feature = "client")]
        app.register_diagnostic(of(RTT, " ms"))
            .register_diagnostic(of(LOSS, " %"))
            .register_diagnostic(of(RESENT, " /s"))
            .register_diagnostic(of(REPAIRED, " /s"))
            .add_systems(Update, of_client.run_if(resource_exists::<crate::WhitewaterClient>));
        #[cfg(all(feature = "server", not(target_arch = "wasm32")))]
        app.register_diagnostic(of(CLIENTS, " clients"))
            .add_systems(Update, of_server.run_if(resource_exists::<crate::WhitewaterServer>));
    }
}

#[cfg(feature = "client")]
fn of_client(
    mut diagnostics: Diagnostics<'_, '_>,
    client: Res<'_, crate::WhitewaterClient>,
    time: Res<'_, Time<Real>>,
    mut meter: Local<'_, Meter<4>>,
) {
    let Some(stats) = client.connection().map(|connection| connection.stats()) else { return };
    let resent = stats.kcp.resends_timeout + stats.kcp.resends_fast;
    let repaired = stats.kcp.rebuilt + stats.repairs.rebuilt;
    let counted = [stats.bytes_sent, stats.bytes_received, resent, repaired];
    let rates = meter.measure(time.elapsed(), counted);
    for (path, rate) in [BYTES_SENT, BYTES_RECEIVED, RESENT, REPAIRED].iter().zip(rates) {
        diagnostics.add_measurement(path, || rate);
    }
    diagnostics.add_measurement(&RTT, || stats.rtt.as_secs_f64() * 1e3);
    if let Some(loss) = stats.loss {
        diagnostics.add_measurement(&LOSS, || loss * 1e2);
    }
}

#[cfg(all(feature = "server", not(target_arch = "wasm32")))]
fn of_server(
    mut diagnostics: Diagnostics<'_, '_>,
    server: Res<'_, crate::WhitewaterServer>,
    clients: Res<'_, crate::ClientEntities>,
    time: Res<'_, Time<Real>>,
    mut meter: Local<'_, Meter>,
) {
    let stats = server.stats();
    let rates = meter.measure(time.elapsed(), [stats.bytes_sent, stats.bytes_received]);
    for (path, rate) in [BYTES_SENT, BYTES_RECEIVED].iter().zip(rates) {
        diagnostics.add_measurement(path, || rate);
    }
    diagnostics.add_measurement(&CLIENTS, || clients.len() as f64);
}
