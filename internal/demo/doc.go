// Package demo plays one clear and one close Deliberatic round, one ACP
// proposal and one Agora round on a running cluster, by agents that sign
// their own actions and come in through the public doors, and tells what
// happens.
package demo
