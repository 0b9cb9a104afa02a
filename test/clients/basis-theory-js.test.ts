import { BasisTheory } from '@basis-theory/basis-theory-js';
import type { BasisTheory as Client } from '@basis-theory/basis-theory-js/types/sdk/index.js';
import { expect } from 'chai';
import { startTestControlPlane, type TestControlPlane } from '../support/control-plane.ts';
