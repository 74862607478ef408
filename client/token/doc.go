// Package token sends a projected service-account token with the calls of a CSI driver, so that the proxy of a Windows node
// can tell which pod's service account calls. It trusts the process that serves the pipe with the token: a token must be
// made for the proxy's audience alone, so that it opens nothing else.
//
// The pod mounts a token and the driver names its file:
//
//	volumes:
//	- name: pipeguard
//	  projected:
//	    sources:
//	    - serviceAccountToken: {audience: pipeguard, expirationSeconds: 3600, path: token}
//
// The published clients of CSI Proxy (NewClient of each group) take no gRPC options. A driver calls [Dial] in their place,
// and makes the generated stub on the connection:
//
//	source := token.NewSource(`C:\var\run\secrets\pipeguard\token`, token.Options{})
//	conn, err := token.Dial(`\\.\pipe\csi-proxy-disk-v1`, source, winio.DialPipeContext)
//	disk := v1.NewDiskClient(conn)
//
// A driver that makes its connections itself adds one, and only one, of [Source.Credentials] and the two interceptors:
// the proxy refuses calls with two tokens.
package token
