// Package configfile reads configuration files in YAML strictly and reports the line and column of each fault.
// It trusts the accounts that may write a file; text that reads otherwise than it looks is refused.
package configfile
