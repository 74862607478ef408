// Package configfile reads configuration files in YAML strictly, and says in which line and column of a file a fault is.
package configfile
