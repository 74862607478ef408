// Package nodepolicy puts together the request policy of nodes: what is built in, what is added to it, and what must hold of
// both before they decide. It trusts no addition, and knows nothing of calls: who makes policies for nodes uses it as they do.
package nodepolicy
