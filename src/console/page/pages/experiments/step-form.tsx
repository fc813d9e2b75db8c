/** A step of the setup of an experiment whose fields are saved together. */

import type { ComponentChildren } from "preact";
import { Form } from "../../components/form.tsx";
import type { UnsavedFields } from "../../lib/form.ts";
import { lazyMessages } from "../../messages/later.ts";

const w = lazyMessages.experiments;

export function StepForm({
  title,
  action = w.saveNext,
  ...form
}: {
  title: string;
  action?: string;
  unsaved: UnsavedFields;
  /** Resolves with false if nothing was saved. */
  onSend: () => Promise<unknown>;
  disabledReason: string | false;
  children: ComponentChildren | ((getError: (field: string) => string | undefined) => ComponentChildren);
}) {
  return (
    <section class="card stack">
      <h2>{title}</h2>
      <Form action={action} done={w.draftSaved} {...form} />
    </section>
  );
}
