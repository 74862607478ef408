// Package install makes this program a service of the node, replaces an older one, and undoes what does not run.
// It trusts the configuration and the program that it is given, and accounts that may write into the directories that it fills.
package install
