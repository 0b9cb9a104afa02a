/** Places at destinations: never more than there are, in the order of asking, and none is lost. */
import { expect } from 'chai';
import { type Place, Places, TooManyWaitError } from '../../../data-plane/proxy/places.ts';
import { Random } from '../../support/random.ts';

const never = new AbortController().signal;

describe('places at a destination', () => {
  it('are as many as there may be, for each destination', () => {
    const places = new Places(2);
    expect(places.enter('a')).not.to.equal(undefined);
    const second = places.enter('a');
    expect(places.enter('a')).to.equal(undefined);
    expect(places.enter('b')).not.to.equal(undefined);
    second?.leave();
    second?.leave();
    expect(places.enter('a')).not.to.equal(undefined);
    expect(places.enter('a')).to.equal(undefined);
  });

  it('are handed on in the order of asking', async () => {
    const places = new Places(1);
    let held = places.enter('a') as Place;
    const order: number[] = [];
    const waiting = [1, 2, 3].map(async (number) => {
      const place = await places.wait('a', never);
      order.push(number);
      return place;
    });
    for (const one of waiting) {
      held.leave();
      expect(places.enter('a'), 'who comes now is behind').to.equal(undefined);
      held = await one;
    }
    expect(order).to.deep.equal([1, 2, 3]);
  });

  it('are not handed to those who left', async () => {
    const places = new Places(1);
    const held = places.enter('a');
    const leaving = new AbortController();
    const left = places.wait('a', leaving.signal).then(
      () => 'place',
      () => 'left',
    );
    const stayed = places.wait('a', never);
    // In one turn: the place is given back before anybody has noticed.
    leaving.abort();
    held?.leave();
    expect(await left).to.equal('left');
    (await stayed).leave();
    expect(places.enter('a')).not.to.equal(undefined);
    const gone = await places.wait('a', leaving.signal).catch((error: Error) => error.name);
    expect(gone).to.equal('AbortError');
  });

  it('are waited for by so many at once, wherever they go', async () => {
    const places = new Places(1, 2);
    for (const origin of ['a', 'b', 'c']) places.enter(origin);
    const leaving = new AbortController();
    const left = places.wait('a', leaving.signal).catch(() => 'left');
    void places.wait('b', never);
    const refused = () => places.wait('c', never).catch((error: unknown) => error);
    expect(await refused()).to.be.instanceOf(TooManyWaitError);
    expect(places.enter('d'), 'who need not wait is let in').not.to.equal(undefined);
    leaving.abort();
    expect(await left).to.equal('left');
    void places.wait('c', never);
    expect(await refused()).to.be.instanceOf(TooManyWaitError);
  });

  it('are all there again after any course of things', async () => {
    const random = new Random(3);
    const places = new Places(4);
    let inside = 0;
    let most = 0;
    await Promise.all(
      Array.from({ length: 300 }, async () => {
        await new Promise((resolve) => setTimeout(resolve, random.below(20)));
        const signal = random.chance(0.3) ? AbortSignal.timeout(random.below(10)) : never;
        const place = places.enter('a') ?? (await places.wait('a', signal).catch(() => undefined));
        if (place === undefined) return;
        inside += 1;
        most = Math.max(most, inside);
        await new Promise((resolve) => setTimeout(resolve, random.below(5)));
        inside -= 1;
        place.leave();
      }),
    );
    expect(most).to.equal(4);
    const all = Array.from({ length: 5 }, () => places.enter('a'));
    expect(all.filter((place) => place !== undefined)).to.have.length(4);
  });
});
