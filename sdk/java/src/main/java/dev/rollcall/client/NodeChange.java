package dev.rollcall.client;

import dev.rollcall.node.v1.Node;

/** One node as it was and as it is; null where it was not there, or is no longer. */
public record NodeChange(Node before, Node after) {}
