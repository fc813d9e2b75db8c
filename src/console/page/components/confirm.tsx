/** Re-authentication on the server's request, and confirmation of dangerous actions. */

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { confirmPassword, request } from "../lib/api.ts";
import { useForm } from "../lib/form.ts";
import { session } from "../lib/session.ts";
import { messages } from "../messages/index.ts";
import { Dialog } from "./dialog.tsx";
import { Field } from "./fields.tsx";
import { FormDialog } from "./form.tsx";
import { Button } from "./primitives.tsx";

const w = messages.frame;
const waiting = signal<((isConfirmed: boolean) => void) | undefined>(undefined);

confirmPassword.ask = () =>
  new Promise((resolve) => {
    waiting.value?.(false);
    waiting.value = resolve;
  });

export function ConfirmPassword() {
  // An action of a user who has left must not wait for the password of the next one.
  useEffect(
    () => () => {
      waiting.peek()?.(false);
      waiting.value = undefined;
    },
    [],
  );
  const resolve = waiting.value;
  if (!resolve) return null;
  return (
    <PasswordDialog
      onEnd={(isConfirmed) => {
        waiting.value = undefined;
        resolve(isConfirmed);
      }}
    />
  );
}

function PasswordDialog({ onEnd }: { onEnd: (isConfirmed: boolean) => void }) {
  const isByKey = session.value.state === "in" && session.value.facts.is_from_key;
  const form = useForm({ password: "" }, async ({ password }) => {
    const body = isByKey ? { personal_api_key: password } : { password };
    await request("/api/session/confirm/", { method: "POST", body });
    onEnd(true);
  });
  return (
    <FormDialog
      title={w.confirmTitle}
      form={form}
      action={w.confirm}
      onCancel={() => onEnd(false)}
      onClose={() => onEnd(false)}
    >
      <p>{w.confirmHelp}</p>
      <Field
        label={isByKey ? messages.signing.key : w.password}
        type="password"
        autocomplete="current-password"
        {...form.input("password")}
        error={form.error}
        autofocus
      />
    </FormDialog>
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
