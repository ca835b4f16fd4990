package dev.rollcall.client;

import dev.rollcall.node.v1.Node;

/**
 * One node before and after a change. {@code before} is null for an added node, {@code
 * after} for a removed one.
 */
public record NodeChange(Node before, Node after) {}
