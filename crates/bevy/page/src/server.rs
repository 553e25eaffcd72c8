//! The native end.

use crate::{Click, Cookie, SECRET};
use bevy::prelude::*;
use bevy_replicon::prelude::*;
use bevy_whitewater::WhitewaterServer;
use bevy_whitewater::replicon::RepliconSession;
use whitewater::ServerConfig;
use whitewater_web::{WebConfig, listen};

pub(crate) fn play(mut app: App) {
    app.add_systems(Startup, open).add_systems(Update, count).run();
}

fn open(mut commands: Commands<'_, '_>, channels: Res<'_, RepliconChannels>) -> Result {
    let mut server =
        WhitewaterServer::bind("127.0.0.1:0", &ServerConfig::secret(channels.session(), SECRET))?;
    let mut web = WebConfig::self_signed(["localhost", "127.0.0.1"]);
    web.addr = ([127, 0, 0, 1], 0).into();
    let (web, browsers) = listen(&web)?;
    server.attach(browsers)?;
    let hash: String = web.certificate_hash().iter().map(|byte| format!("{byte:02x}")).collect();
    println!(
        r#"{{"url":"{}","websocket":"ws://{}/","hash":"{hash}"}}"#,
        web.url("127.0.0.1"),
        web.local_addr()
    );
    commands.insert_resource(server);
    commands.spawn((Replicated, Cookie::default()));
    Ok(())
}

fn count(mut clicks: MessageReader<'_, '_, FromClient<Click>>, mut cookies: Query<'_, '_, &mut Cookie>) {
    for click in clicks.read() {
        for mut cookie in &mut cookies {
            cookie.clicks += click.message.0;
        }
    }
}
