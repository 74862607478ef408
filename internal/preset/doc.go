// Package preset says what the presets of the chart set, and which of them holds where settings are in force. The chart reads the same
// file. It trusts nothing and reads no cluster.
package preset
