/** Re-authentication on the server's request, and confirmation of dangerous actions. */

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { confirmPassword, errorMessage, request } from "../lib/api.ts";
import { session } from "../lib/session.ts";
import { words } from "../messages/index.ts";
import { Dialog } from "./dialog.tsx";
import { Field } from "./fields.tsx";
import { Button } from "./primitives.tsx";

const w = words.frame;
const waiting = signal<((isConfirmed: boolean) => void) | undefined>(undefined);

confirmPassword.ask = () =>
  new Promise((resolve) => {
    waiting.value?.(false);
    waiting.value = resolve;
  });

export function ConfirmPassword() {
  const [password, setPassword] = useState("");
  const [error, setError] = useState<string>();
  const resolve = waiting.value;
  if (!resolve) return null;
  const end = (isConfirmed: boolean) => {
    setPassword("");
    setError(undefined);
    waiting.value = undefined;
    resolve(isConfirmed);
  };
  const isByKey = session.value.state === "in" && session.value.facts.is_from_key;
  const submit = async () => {
    try {
      const body = isByKey ? { personal_api_key: password } : { password };
      await request("/api/session/confirm/", { method: "POST", body });
      end(true);
    } catch (failure) {
      setError(errorMessage(failure));
    }
  };
  return (
    <Dialog
      title={w.confirmTitle}
      onClose={() => end(false)}
      onSubmit={submit}
      actions={
        <>
          <Button onClick={() => end(false)}>{w.cancel}</Button>
          <Button kind="main" type="submit">
            {w.confirm}
          </Button>
        </>
      }
    >
      <p>{w.confirmHelp}</p>
      <Field
        label={isByKey ? words.signing.key : w.password}
        type="password"
        autocomplete="current-password"
        value={password}
        onInput={setPassword}
        error={error}
        autofocus
      />
    </Dialog>
  );
}

/** A confirmation with one action. */
export function ConfirmDialog({
  title,
  text,
  action,
  onYes,
  onClose,
  children,
}: {
  title: string;
  text: string;
  action: string;
  onYes: () => void;
  onClose: () => void;
  /** Additional options. */
  children?: ComponentChildren;
}) {
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{w.cancel}</Button>
          <Button
            kind="danger"
            onClick={() => {
              onClose();
              onYes();
            }}
          >
            {action}
          </Button>
        </>
      }
    >
      <p>{text}</p>
      {children}
    </Dialog>
  );
}
