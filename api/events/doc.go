// Package events is the door for followers: GET /events, a stream of
// server-sent events.
//
//	GET /events?since=N&for=me&subject=ID
//	Authorization: Bearer TOKEN
//
// Each message is one event of the decision log: id is its leaf number, event
// its type ("acp.resolved"), data the record as JSON. since (or the header
// Last-Event-ID, which wins) resumes after a leaf; without either the stream
// starts at the head. for=me leaves out what is addressed to others, subject
// all that is not about one subject, such as a round. A heartbeat comment keeps the connection open and moves the id along, so that
// a follower of few events resumes near the head.
//
// A reader that takes too long is cut off with an "event: cut" message whose
// data holds code, message, fix and resume_after; nothing is lost, it can
// resume there.
package events
