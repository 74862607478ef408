// Package apiserver serves every version of every CSI Proxy API group by converting it to the newest one.
// It trusts the published message descriptors and nothing that arrives in a message.
package apiserver
