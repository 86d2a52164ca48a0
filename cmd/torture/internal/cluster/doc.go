// Package cluster runs etcd, PostgreSQL nodes with Patroni agents, and servers of the
// tablerock program in one temporary folder of this machine, with all connections between
// them through links that can fail. It ends every process that it caused.
package cluster
