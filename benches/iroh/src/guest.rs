use crate::Result;
use crate::peer::{ALPN, direct, from_line, online};
use std::time::{Duration, Instant};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(10);
const MESSAGE: [u8; 40] = *b"a message as long as those of many games";

pub(crate) async fn run(relay: &str, host: &str) -> Result<()> {
    let host = from_line(host)?;
    let endpoint = online(relay).await?;
    let start = Instant::now();
    let connection = endpoint.connect(host, ALPN).await?;
    let connected = start.elapsed();
    let within = PATIENCE.saturating_sub(connected);
    let echoed = async {
        let (mut send, mut recv) = connection.open_bi().await?;
        send.write_all(&MESSAGE).await?;
        send.finish()?;
        let mut back = [0; MESSAGE.len()];
        recv.read_exact(&mut back).await?;
        if back == MESSAGE { Ok(start.elapsed()) } else { Err("not an echo".into()) }
    };
    let direct = async {
        direct(&connection).await?;
        Result::Ok(start.elapsed())
    };
    let both = async {
        connection.accept_uni().await?.read_to_end(1).await?;
        Result::Ok(start.elapsed())
    };
    let (echoed, direct, host_direct) =
        tokio::join!(timeout(within, echoed), timeout(within, direct), timeout(within, both));
    let (echoed, direct, host_direct) = (in_time(echoed)?, in_time(direct)?, in_time(host_direct)?);
    let both_direct = direct.zip(host_direct).map(|(guest, host)| guest.max(host));
    let path =
        connection.paths().iter().find(|path| path.is_selected()).map(|path| path.remote_addr().to_string());
    println!(
        r#"{{"connected":{},"echoed":{},"direct":{},"both_direct":{},"path":{:?}}}"#,
        ms(Some(connected)),
        ms(echoed),
        ms(direct),
        ms(both_direct),
        path.unwrap_or_default(),
    );
    connection.close(0_u8.into(), b"");
    endpoint.close().await;
    Ok(())
}

/// Nothing, if time was over.
fn in_time<T, E>(result: std::result::Result<Result<T>, E>) -> Result<Option<T>> {
    result.ok().transpose()
}

fn ms(time: Option<Duration>) -> String {
    time.map_or("null".into(), |time| format!("{:.1}", time.as_secs_f64() * 1e3))
}
