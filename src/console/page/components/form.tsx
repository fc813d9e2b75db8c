/** A form that submits itself and reports the result. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { type ApiError, toApiError } from "../lib/api.ts";
import { words } from "../messages/index.ts";
import { Button } from "./primitives.tsx";
import { toast } from "./toast.tsx";

export function Form({
  children,
  onSend,
  action = words.settings.save,
  done = words.settings.saved,
  refusal,
}: {
  children: ComponentChildren | ((errorOf: (field: string) => string | undefined) => ComponentChildren);
  /** Resolves with false if nothing was done. */
  onSend: () => Promise<unknown>;
  action?: string;
  done?: string;
  refusal?: string | false | undefined;
}) {
  const [failure, setFailure] = useState<ApiError>();
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
      if ((await onSend()) !== false) toast(done);
    } catch (error) {
      setFailure(toApiError(error));
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
