// Package acl decides which caller may use which operation of which pipe.
// It trusts the identity that it is given no further than its assurance says, and allows nothing that no rule names.
package acl
