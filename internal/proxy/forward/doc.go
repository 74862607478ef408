// Package forward passes admitted calls on to gRPC servers on other pipes: to a csi-proxy.exe call by call, decoded and
// judged, and to any other server byte by byte.
// It trusts a server whose process runs the program that was asked for, and anybody who made the pipe if none was.
package forward
