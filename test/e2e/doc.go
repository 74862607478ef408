// Package e2e installs the chart on a whole cluster on this machine and tries what an operator, a driver and an attacker do.
// Its tests have the build tag e2e, need root on Linux and the programs of test/tools/build, and trust none of what the webhook says of itself: what was admitted is asked of the API server.
package e2e
