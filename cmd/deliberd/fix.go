package main

import "regexp"

// methodName is how a refusal's advice names a kind of action or a query.
var methodName = regexp.MustCompile(`\b(?:acp|agent|agora|cluster|deliberatic|registry)\.[a-z_]+\b`)

// commands is what to type for each method that advice may name.
var commands = map[string]string{
	"acp.submit": "acp submit", "acp.respond": "acp respond", "acp.escalate": "acp escalate", "acp.resolve": "acp resolve",
	"acp.get": "acp get", "acp.list": "acp list",

	"agora.propose": "agora propose", "agora.vote": "agora vote", "agora.veto": "agora veto", "agora.evaluate": "agora evaluate",
	"agora.get": "agora get", "agora.list": "agora list", "agora.dissents": "agora dissents",

	"deliberatic.open": "round open", "deliberatic.position": "round position", "deliberatic.challenge": "round challenge", "deliberatic.support": "round support",
	"deliberatic.relate": "round relate", "deliberatic.evidence": "round evidence", "deliberatic.done": "round done", "deliberatic.resolve": "round resolve",
	"deliberatic.confirm": "round confirm", "deliberatic.review": "round review", "deliberatic.outcome": "round outcome",
	"deliberatic.get": "round show", "deliberatic.list": "round list", "deliberatic.explain": "round explain", "deliberatic.export": "evidence export",
	"deliberatic.reputation": "agent reputation",

	"registry.register": "agent register", "registry.rotate": "agent rotate", "registry.revoke": "agent revoke", "registry.grant": "agent grant", "registry.ungrant": "agent ungrant",
	"registry.get": "agent show", "registry.list": "agent list", "registry.grants": "agent show",

	"cluster.invite": "invite", "cluster.approve": "approve", "cluster.remove": "remove", "cluster.join": "join", "cluster.members": "peers", "cluster.peers": "peers", "cluster.guilt": "guilt",
	"cluster.changes": "approve", "cluster.status": "status", "agent.inbox": "agent inbox",
}

// typed puts a refusal's advice, which names methods, in this program's words.
func typed(fix string) string {
	return methodName.ReplaceAllStringFunc(fix, func(name string) string {
		if c, ok := commands[name]; ok {
			return "`deliberd " + c + "`"
		}
		return name
	})
}
