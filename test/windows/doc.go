// Package windows drives the real proxy.exe over real named pipes by the client that CSI drivers use.
// Its tests need the paths of the proxy in PIPEGUARD_PROXY, of the command line in PIPEGUARD_CLI and of a copy of the test binary in
// PIPEGUARD_STRANGER: run.sh sets them.
package windows
