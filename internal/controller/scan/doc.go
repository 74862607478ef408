// Package scan judges what exists with the policies that decide now, and reports what it finds: a PipeReport in each
// namespace with findings, and a ClusterPipeReport for PersistentVolumes.
// It trusts the API server's lists and nothing that is written in the objects: their texts are bounded and made printable.
//
// Memory holds one object at a time, a digest for each namespace and kind, and the findings. A report never lacks
// objects silently: while a list cannot be read to its end, the report that was there stays, and the pass counts as
// incomplete in log and metrics.
//
// The service account of the process needs:
//
//	""                pods, podtemplates, replicationcontrollers, persistentvolumes, namespaces    list
//	apps              deployments, daemonsets, statefulsets, replicasets                           list
//	batch             jobs, cronjobs                                                               list
//	pipeguard.dev     pipereports, clusterpipereports                        get, list, create, update, delete
package scan
