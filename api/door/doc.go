// Package door opens a node's HTTP door: it listens, mounts the doors of the
// node and stops them in order. Besides what is mounted it answers GET
// /healthz (the process runs) and GET /readyz (the node has a leader and is
// caught up).
//
// An address that is not loopback needs TLS unless Config.Insecure says
// otherwise: tokens would travel in the clear.
package door
