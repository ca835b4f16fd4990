/** A gate that blocks others until a test opens it. */
export interface Gate {
  /** Resolves once the gate is open. */
  readonly passed: Promise<void>;
  open(): void;
}

/** Create a closed gate. */
export function createGate(): Gate {
  let open: () => void = () => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}
