// Package intake reads the bodies of requests, so that those that never come take nothing from those that do.
// It trusts no sender: any pod of the cluster can reach the webhook, from several addresses.
package intake
