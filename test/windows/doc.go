// Package windows drives the real proxy.exe over real named pipes by the client that CSI drivers use.
// Its tests need the proxy's path in PIPEGUARD_PROXY and a copy of the test binary in PIPEGUARD_STRANGER: run.sh sets both.
package windows
