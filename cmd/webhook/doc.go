// Command webhook answers the AdmissionReviews of a Kubernetes API server: it refuses pods that would get a guarded pipe they may not have.
// It trusts the accounts that can write its policy directory, parameters and certificate files.
package main
