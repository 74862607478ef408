// Package certs makes the certificate of the webhook, has API servers trust it before it is served, and replaces it
// without a request being missed.
// It trusts the content of the Secret that holds the keys only as far as it is consistent, and no clock but
// its own.
//
// # Parts
//
// Every replica has a [Cluster], which copies the Secret and the configurations, a [Follower], which serves, and a
// [Chain] for its readiness. The leader has a [Rotator] as well. With certificates of cert-manager there are only a
// Cluster without a Secret in its [Names], and a Chain with the GetCertificate of whatever reads the files.
//
//	names := certs.Names{Namespace: …, Service: …, Secret: …, Configurations: …}
//	cluster, err := certs.NewCluster(manager.GetConfig(), names)
//	metrics := certs.NewMetrics(registry)
//	follower, err := certs.NewFollower(certs.FollowerOptions{Names: names, Copy: cluster, Log: log, Metrics: metrics})
//	chain, err := certs.NewChain(certs.ChainOptions{Names: names, Copy: cluster, GetCertificate: follower.GetCertificate, Metrics: metrics})
//	rotator, err := certs.NewRotator(certs.Options{Names: names, Store: cluster, Log: log, Metrics: metrics, Events: manager.GetEventRecorder("pipeguard")})
//
// Cluster, Follower and Rotator are runnables of a controller-runtime manager; they know which of them needs the
// leadership. Nothing is read through the manager's cache, which needs no options for them: one kind can have one field
// selector there, and the two configurations need two. To select both by a label would take the permission to list and
// watch all configurations of the cluster: RBAC allows a list of one name, and none by label.
//
// # Permissions
//
// In the namespace: get, list, watch and patch of the Secret by its name; create of secrets, which cannot be limited to
// a name and is only needed if a deleted Secret is not made again otherwise, as by the chart; create and patch of events in events.k8s.io. In the cluster:
// get, list, watch and patch of validatingwebhookconfigurations by their names. Lists and watches select one name, and
// so are allowed by a rule with resourceNames. A Chain alone needs only get, list and watch of the configurations.
package certs
