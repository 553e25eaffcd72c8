using System;
using System.Diagnostics;

namespace Whitewater.Tests
{
    /// <summary>A program in Rust at the other end: capi/examples/peer.rs.</summary>
    internal sealed class Peer : IDisposable
    {
        private readonly Process process;

        internal Peer(params string[] words)
        {
            string program = Environment.GetEnvironmentVariable("WHITEWATER_PEER");
            process = Process.Start(new ProcessStartInfo(program, string.Join(" ", words))
            {
                UseShellExecute = false,
                RedirectStandardInput = true,
                RedirectStandardOutput = true,
            });
        }

        internal string ReadLine()
        {
            return process.StandardOutput.ReadLine();
        }

        /// <summary>What it prints when its input ends.</summary>
        internal string Stop()
        {
            process.StandardInput.Close();
            return process.StandardOutput.ReadToEnd().Trim();
        }

        internal int Wait()
        {
            process.WaitForExit();
            return process.ExitCode;
        }

        internal bool HasExited => process.HasExited;

        /// <summary>A connect token of a matchmaker with the right key or a wrong one.</summary>
        internal static byte[] Token(string address, string which)
        {
            using (var peer = new Peer("token", address, which))
            {
                string hex = peer.ReadLine();
                var token = new byte[hex.Length / 2];
                for (int i = 0; i < token.Length; i++)
                {
                    token[i] = Convert.ToByte(hex.Substring(2 * i, 2), 16);
                }
                return token;
            }
        }

        public void Dispose()
        {
            try
            {
                process.Kill();
            }
            catch (Exception)
            {
                // It has just ended by itself.
            }
            process.WaitForExit();
            process.Dispose();
        }
    }
}
