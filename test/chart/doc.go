// Package chart checks what helm makes of charts/pipeguard, and that config/ says the same.
// It trusts helm and kubectl as built by test/tools; what an API server makes of the objects is tested elsewhere.
package chart
