// Package scan judges the existing objects of a cluster by the active policies and reports its findings: a PipeReport in each
// namespace with findings, and a ClusterPipeReport for PersistentVolumes.
// It trusts the API server's lists and nothing that is written in the objects: their texts are bounded and made printable.
//
// Each pass judges everything. 10,000 pods of 8 KB and 500 more with six pipes each take 1.4 s of CPU, 0.2 % of a core
// with a pass in ten minutes: 130 µs for a pod and 440 µs for one with pipes, twice and 1.3 times as much as judging it
// alone. BenchmarkPass measures it; docs/performance.md has the table. A pass judges one object at a time and pauses for
// as long as it judges, so that reviews go on. Memory holds one object, and until they are published the findings that
// reports list, which are bounded; all others are only counted. From one pass to the next it holds which content each report has.
//
// A report never lacks objects silently: while a list cannot be read to its end, the report that was there stays, and the
// pass counts as incomplete in log and metrics.
//
// With Options.Standard the same findings are written in a kind that other projects define, too. What is wrong with those
// reports, such as a cluster without their kinds, delays nothing else; the next pass tries again.
//
// The service account of the process needs:
//
//	""                pods, podtemplates, replicationcontrollers, persistentvolumes                list
//	apps              deployments, daemonsets, statefulsets, replicasets                           list
//	batch             jobs, cronjobs                                                               list
//	pipeguard.dev     pipereports, clusterpipereports                        get, list, create, update, delete
//	the standard kind                                                        get, list, create, update, delete
//	rbac.authorization.k8s.io   the ClusterRole of Options.StandardRole      get
package scan
