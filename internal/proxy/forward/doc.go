// Package forward passes admitted calls on to gRPC servers on other pipes: to a csi-proxy.exe call by call, decoded and
// judged, and to any other server byte by byte.
// It trusts a server whose process runs the configured program, and any process that made the pipe if none is configured.
package forward
