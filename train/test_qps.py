"""Networks whose QPs were moved compute at QP 0 and 63 what they computed at those that these stand for."""
import unittest

import torch

import model as M
import qps

LEAST, MOST = -5.5, 60


class Moved(unittest.TestCase):
    def test_ends(self):
        torch.manual_seed(1)
        both = torch.nn.ModuleDict({"i": M.Intra(C=16), "p": M.Inter(C=16)})
        by_qp = [m for m in both.modules() if isinstance(m, (M.QScale, M.ZPrior))]
        for m in by_qp:
            for p in m.parameters():
                p.data = torch.randn_like(p) * 0.3
        t = lambda qp: torch.tensor([(qp - 31.5) / 31.5])
        look = lambda qp: [m(t(qp)) if isinstance(m, M.QScale) else m.bits(t(qp))(torch.ones(1)) for m in by_qp]
        before = look(LEAST), look((LEAST + MOST) / 2), look(MOST)
        w = both.state_dict()
        qps.move(w, "p", LEAST, MOST)
        both.load_state_dict(w)
        for x, y in zip(before[0][:4], look(LEAST)):
            torch.testing.assert_close(x, y)  # intra's stay
        w = both.state_dict()
        qps.move(w, "i", LEAST, MOST)
        both.load_state_dict(w)
        for was, qp in zip(before, (0, 31.5, 63)):
            for x, y in zip(was, look(qp)):
                torch.testing.assert_close(x, y, rtol=4e-3, atol=1e-3)  # F16
        self.assertEqual(len(by_qp), 9)


if __name__ == "__main__":
    unittest.main()
