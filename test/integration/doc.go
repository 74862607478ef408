// Package integration drives the webhook through a real API server, over every route on which an object can reach it.
// Its tests need the programs that test/tools/build makes; it trusts the answers and the audit log of the API server.
package integration
