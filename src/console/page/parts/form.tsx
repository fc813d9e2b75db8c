/** A form that sends itself and says what became of it. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { asFailure, type Failure } from "../lib/api.ts";
import { words } from "../words/index.ts";
import { Button } from "./basics.tsx";
import { tell } from "./toast.tsx";

export function Form({
  children,
  onSend,
  action = words.settings.save,
  done = words.settings.saved,
  refusal,
}: {
  children: ComponentChildren | ((errorOf: (field: string) => string | undefined) => ComponentChildren);
  onSend: () => Promise<unknown>;
  action?: string;
  done?: string;
  refusal?: string | false | undefined;
}) {
  const [failure, setFailure] = useState<Failure>();
  const [isBusy, setBusy] = useState(false);
  let isAtField = false;
  const errorOf = (field: string) => {
    if (failure?.attr !== field) return undefined;
    isAtField = true;
    return failure.detail;
  };
  const fields = typeof children === "function" ? children(errorOf) : children;
  const send = async () => {
    setBusy(true);
    setFailure(undefined);
    try {
      await onSend();
      tell(done);
    } catch (error) {
      setFailure(asFailure(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (!refusal) void send();
      }}
    >
      {fields}
      {failure && !isAtField && (
        <p class="error" role="alert">
          {failure.detail}
        </p>
      )}
      <div class="row">
        <Button kind="main" type="submit" isDisabled={isBusy} refusal={refusal}>
          {action}
        </Button>
        {refusal && <span class="help">{refusal}</span>}
      </div>
    </form>
  );
}
