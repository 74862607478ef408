// Package winhost acts on the directories and links of a Windows host.
// It trusts the working directories themselves and nothing beneath them: each step down is taken from an open
// directory to an open directory, and a link or a mount point on the way ends the walk.
package winhost
