// Package config reads the configuration file of the node proxy.
// It trusts the accounts that may write the file, and refuses a file with a key or a value that it does not know.
package config
