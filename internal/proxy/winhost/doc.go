// Package winhost acts on the disks, volumes, directories, shares, iSCSI targets and services of a Windows host.
// It trusts the working directories themselves and nothing beneath them: each step down is taken from an open
// directory to an open directory, and a link or a mount point on the way ends the walk. What the host does not say
// of a disk counts against the operation: a disk that may be the system's is treated as one.
package winhost
