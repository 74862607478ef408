// Package profiles has ready-made rules for the drivers that use CSI Proxy.
// It trusts a driver's namespace, service account and container to be what the driver's own manifests say.
package profiles
