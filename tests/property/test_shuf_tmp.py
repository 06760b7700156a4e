import random,pytest
from hypothesis import given,settings,strategies as st
from tests.strategies import scenarios
from tests.property.test_schedule_laws import question,outcome
from joiner.model.meta import replace
from joiner.scheduling.lpround import RoundedRun,RepricedRun
from joiner.scheduling.worth import PricedRun
from joiner.scheduling.effort import Unlimited
def plan(pr,c):
    r=c(pr,Unlimited()); r.place(); return r.plan()
@pytest.mark.parametrize("c",[PricedRun,RoundedRun,RepricedRun])
@settings(max_examples=150,deadline=None)
@given(scenario=scenarios(),chance=st.randoms(use_true_random=False))
def test_shuffle(c,scenario,chance):
    p=question(scenario).problem
    mixed=[list(x) for x in (p.pods,p.pools,p.nodes,p.daemons)]
    for x in mixed: chance.shuffle(x)
    q=replace(p,pods=tuple(mixed[0]),pools=tuple(mixed[1]),nodes=tuple(mixed[2]),daemons=tuple(mixed[3]))
    assert outcome(q,plan(q,c))==outcome(p,plan(p,c))
