use crate::Result;
use crate::peer::{direct, online, to_line};
use iroh::endpoint::Incoming;

pub(crate) async fn run(relay: &str) -> Result<()> {
    let endpoint = online(relay).await?;
    println!("{}", to_line(&endpoint.addr()));
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async {
            if let Err(error) = serve(incoming).await {
                eprintln!("{error}");
            }
        });
    }
    Ok(())
}

/// Echoes, and sends a byte once it sends on a direct path.
async fn serve(incoming: Incoming) -> Result<()> {
    let connection = incoming.await?;
    let echo = async {
        let (mut send, mut recv) = connection.accept_bi().await?;
        tokio::io::copy(&mut recv, &mut send).await?;
        send.finish()?;
        Result::Ok(())
    };
    let tell = async {
        direct(&connection).await?;
        let mut send = connection.open_uni().await?;
        send.write_all(&[1]).await?;
        send.finish()?;
        Result::Ok(())
    };
    tokio::try_join!(echo, tell)?;
    connection.closed().await;
    Ok(())
}
