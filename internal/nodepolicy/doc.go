// Package nodepolicy makes what decides on nodes beside their own configuration: the request policy, of what is built in and what is added to it, and the
// access list and the Rego of a bundle. It trusts a bundle's signature, and lets nothing decide that has not held what must hold and refused strangers first. It
// knows no server: those who make policies for nodes try them with it.
package nodepolicy
