// Package failover runs trials on a cluster: clients write and read through servers in
// front of PostgreSQL nodes, a fault hits one of them, and the history is checked.
package failover
